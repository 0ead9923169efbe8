import { Body, Controller, HttpCode, Post, Query } from '@nestjs/common';
import { ApiOkResponse, ApiTags } from '@nestjs/swagger';
import { UnsafeDemo } from '../demo/unsafe-demo.js';
import { UnsafeQuery } from '../demo/unsafe.query.js';
import { ApiErrors } from '../http/api-errors.decorator.js';
import { BankService } from './bank.service.js';
import { PayoutResultDto } from './dto/payout-result.dto.js';
import { PayoutDto } from './dto/payout.dto.js';

@ApiTags('bank')
@Controller('payouts')
export class BankController {
  constructor(
    private readonly bank: BankService,
    private readonly unsafeDemo: UnsafeDemo,
  ) {}

  @Post()
  @HttpCode(200)
  @ApiOkResponse({ type: PayoutResultDto })
  @ApiErrors(400, 409, 502, 503)
  async send(@Body() payout: PayoutDto, @Query() query: UnsafeQuery): Promise<PayoutResultDto> {
    const isUnsafe = this.unsafeDemo.isAskedFor(query);
    return { reference: await (isUnsafe ? this.bank.sendUnsafe(payout) : this.bank.send(payout)) };
  }
}
