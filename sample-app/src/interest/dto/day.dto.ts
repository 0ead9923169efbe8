import { ApiProperty } from '@nestjs/swagger';
import { IsISO8601, Matches } from 'class-validator';

export class DayDto {
  @ApiProperty({ example: '2026-11-23' })
  @Matches(/^\d{4}-\d\d-\d\d$/, { message: 'day must look like 2026-11-23' })
  @IsISO8601({ strict: true }, { message: 'day must be a day of the calendar' })
  readonly day!: string;
}
