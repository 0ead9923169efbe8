import { Body, Controller, Get, HttpCode, Post, Query } from '@nestjs/common';
import { ApiOkResponse, ApiParam, ApiTags } from '@nestjs/swagger';
import { AccountId } from '../accounts/account-id.decorator.js';
import { UnsafeDemo } from '../demo/unsafe-demo.js';
import { UnsafeQuery } from '../demo/unsafe.query.js';
import { ApiErrors } from '../http/api-errors.decorator.js';
import { DayDto } from './dto/day.dto.js';
import { InterestPaymentsDto } from './dto/interest-payments.dto.js';
import { InterestRunDto } from './dto/interest-run.dto.js';
import { InterestService } from './interest.service.js';

@ApiTags('interest')
@Controller('interest')
export class InterestController {
  constructor(
    private readonly interest: InterestService,
    private readonly unsafeDemo: UnsafeDemo,
  ) {}

  /** Does at once what the nightly job does. */
  @Post('runs')
  @HttpCode(200)
  @ApiOkResponse({ type: InterestRunDto })
  @ApiErrors(400, 409, 503)
  async run(@Body() { day }: DayDto, @Query() query: UnsafeQuery): Promise<InterestRunDto> {
    const paid = this.unsafeDemo.isAskedFor(query)
      ? await this.interest.payAllUnsafe(day)
      : await this.interest.payAll(day);
    return { day, paid: paid ?? 0, skipped: paid === undefined };
  }

  @Get('accounts/:id')
  @ApiParam({ name: 'id', type: 'integer' })
  @ApiOkResponse({ type: InterestPaymentsDto })
  @ApiErrors(400)
  async payments(@AccountId() id: number): Promise<InterestPaymentsDto> {
    return { account: id, payments: await this.interest.countPayments(id) };
  }
}
