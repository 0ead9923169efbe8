import { ApiProperty } from '@nestjs/swagger';
import { SerialParams } from './serial.params.js';

export class ChargesDto extends SerialParams {
  @ApiProperty({ example: 1, description: 'How often the customer was charged.' })
  readonly charges!: number;
}
