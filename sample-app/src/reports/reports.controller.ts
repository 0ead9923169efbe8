import { Controller, Delete, Get, HttpCode, Query } from '@nestjs/common';
import { ApiNoContentResponse, ApiOkResponse, ApiTags } from '@nestjs/swagger';
import { UnsafeDemo } from '../demo/unsafe-demo.js';
import { UnsafeQuery } from '../demo/unsafe.query.js';
import { ApiErrors } from '../http/api-errors.decorator.js';
import { ReportDto } from './dto/report.dto.js';
import { ReportsService } from './reports.service.js';

@ApiTags('report')
@Controller('report')
export class ReportsController {
  constructor(
    private readonly reports: ReportsService,
    private readonly unsafeDemo: UnsafeDemo,
  ) {}

  @Get()
  @ApiOkResponse({ type: ReportDto, description: 'The report, which is a minute old at most.' })
  @ApiErrors(400, 409, 503)
  get(@Query() query: UnsafeQuery): Promise<ReportDto> {
    return this.unsafeDemo.isAskedFor(query) ? this.reports.getUnsafe() : this.reports.get();
  }

  /** Forgets the report, so the next one who asks for it has it made again. */
  @Delete()
  @HttpCode(204)
  @ApiNoContentResponse()
  @ApiErrors(409, 503)
  clear(): Promise<void> {
    return this.reports.clear();
  }
}
