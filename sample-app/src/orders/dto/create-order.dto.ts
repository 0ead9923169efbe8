import { ApiProperty } from '@nestjs/swagger';
import { IsInt, IsString, Matches, Max, MaxLength, Min } from 'class-validator';
import { MAX_MONEY } from '../../accounts/money.js';
import type { OrderRequest } from '../order.js';
import { SerialParams } from './serial.params.js';

export class CreateOrderDto extends SerialParams implements OrderRequest {
  @ApiProperty({ example: 'A red mug', maxLength: 100 })
  @IsString()
  @MaxLength(100)
  @Matches(/^(?=.*\S)\P{Cc}*$/u, { message: 'item must be a name, without control characters' })
  readonly item!: string;

  @ApiProperty({ example: 1200, minimum: 1, maximum: MAX_MONEY, description: 'What it costs, in minor units.' })
  @IsInt()
  @Min(1)
  @Max(MAX_MONEY)
  readonly amount!: number;
}
