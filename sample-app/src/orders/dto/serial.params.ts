import { ApiProperty } from '@nestjs/swagger';
import { Matches } from 'class-validator';

export class SerialParams {
  @ApiProperty({ example: 'web-2026-0001', description: 'The client makes it up, one for each order.' })
  @Matches(/^[\w-]{1,64}$/, { message: 'serial must be 1 to 64 letters, digits, dashes and underscores' })
  readonly serial!: string;
}
