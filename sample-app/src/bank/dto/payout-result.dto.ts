import { ApiProperty } from '@nestjs/swagger';

export class PayoutResultDto {
  @ApiProperty({ example: 'bank-17', description: 'What the bank calls the payout.' })
  readonly reference!: string;
}
