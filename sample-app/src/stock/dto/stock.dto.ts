import { ApiProperty } from '@nestjs/swagger';

export class StockDto {
  @ApiProperty({ example: 'RED-MUG' })
  readonly sku!: string;

  @ApiProperty({ example: 12, description: 'How many are left.' })
  readonly pieces!: number;

  @ApiProperty({ example: 38, description: 'How many times one was sold.' })
  readonly sold!: number;
}
