import { ApiProperty } from '@nestjs/swagger';

export class InterestPaymentsDto {
  @ApiProperty({ example: 1, description: 'The id of the account.' })
  readonly account!: number;

  @ApiProperty({ example: 1, description: 'How often it was paid interest.' })
  readonly payments!: number;
}
