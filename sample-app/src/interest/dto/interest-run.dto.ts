import { ApiProperty } from '@nestjs/swagger';
import { DayDto } from './day.dto.js';

export class InterestRunDto extends DayDto {
  @ApiProperty({ example: 3, description: 'How many accounts this run has paid.' })
  readonly paid!: number;

  @ApiProperty({ example: false, description: 'Whether it did nothing, because another process is at work.' })
  readonly skipped!: boolean;
}
