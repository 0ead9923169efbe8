import { ApiProperty } from '@nestjs/swagger';
import { Matches } from 'class-validator';

export class SkuParams {
  @ApiProperty({ example: 'RED-MUG' })
  @Matches(/^[A-Z0-9][A-Z0-9-]{0,39}$/, { message: 'sku must be 1 to 40 capital letters, digits and dashes' })
  readonly sku!: string;
}
