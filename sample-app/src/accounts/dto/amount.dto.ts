import { ApiProperty } from '@nestjs/swagger';
import { IsInt, Max, Min } from 'class-validator';
import { MAX_MONEY } from '../money.js';

export class AmountDto {
  @ApiProperty({ example: 200, minimum: 1, maximum: MAX_MONEY, description: 'In minor units.' })
  @IsInt()
  @Min(1)
  @Max(MAX_MONEY)
  readonly amount!: number;
}
