import { Body, Controller, Get, HttpCode, Post, Query } from '@nestjs/common';
import { ApiCreatedResponse, ApiOkResponse, ApiParam, ApiTags } from '@nestjs/swagger';
import { UnsafeDemo } from '../demo/unsafe-demo.js';
import { UnsafeQuery } from '../demo/unsafe.query.js';
import { ApiErrors } from '../http/api-errors.decorator.js';
import { AccountId } from './account-id.decorator.js';
import { AccountsService } from './accounts.service.js';
import { AccountDto } from './dto/account.dto.js';
import { AmountDto } from './dto/amount.dto.js';
import { CreateAccountDto } from './dto/create-account.dto.js';

@ApiTags('accounts')
@Controller('accounts')
export class AccountsController {
  constructor(
    private readonly accounts: AccountsService,
    private readonly unsafeDemo: UnsafeDemo,
  ) {}

  @Post()
  @ApiCreatedResponse({ type: AccountDto })
  @ApiErrors(400)
  create(@Body() { owner, balance }: CreateAccountDto): Promise<AccountDto> {
    return this.accounts.create(owner, balance);
  }

  @Get(':id')
  @ApiParam({ name: 'id', type: 'integer' })
  @ApiOkResponse({ type: AccountDto })
  @ApiErrors(400, 404)
  get(@AccountId() id: number): Promise<AccountDto> {
    return this.accounts.get(id);
  }

  @Post(':id/deposit')
  @HttpCode(200)
  @ApiParam({ name: 'id', type: 'integer' })
  @ApiOkResponse({ type: AccountDto })
  @ApiErrors(400, 404, 409, 422, 503)
  deposit(@AccountId() id: number, @Body() { amount }: AmountDto): Promise<AccountDto> {
    return this.accounts.deposit(id, amount);
  }

  @Post(':id/withdraw')
  @HttpCode(200)
  @ApiParam({ name: 'id', type: 'integer' })
  @ApiOkResponse({ type: AccountDto })
  @ApiErrors(400, 404, 409, 422, 503)
  withdraw(@AccountId() id: number, @Body() { amount }: AmountDto, @Query() query: UnsafeQuery): Promise<AccountDto> {
    return this.unsafeDemo.isAskedFor(query)
      ? this.accounts.withdrawUnsafe(id, amount)
      : this.accounts.withdraw(id, amount);
  }
}
