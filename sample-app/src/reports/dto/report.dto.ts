import { ApiProperty } from '@nestjs/swagger';
import type { Report } from '../report.js';

export class ReportDto implements Report {
  @ApiProperty({ example: 7, description: 'Counts the reports that were made.' })
  readonly id!: number;

  @ApiProperty({ example: 12 })
  readonly accounts!: number;

  @ApiProperty({ example: '120000', description: 'The sum of all balances, in minor units.' })
  readonly total!: string;

  @ApiProperty()
  readonly madeAt!: Date;
}
