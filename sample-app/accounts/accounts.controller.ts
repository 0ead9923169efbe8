import { Body, Controller, Get, HttpCode, Post, Query } from '@nestjs/common';
import { ApiCreatedResponse, ApiOkResponse, ApiParam, ApiTags } from '@nestjs/swagger';
import { ApiErrors } from '../http/api-errors.decorator.js';
import { AccountId } from './account-id.decorator.js';
import { AccountsRepository } from './accounts.repository.js';
import { AccountsService } from './accounts.service.js';
import { AccountDto } from './dto/account.dto.js';
import { AmountDto } from './dto/amount.dto.js';
import { CreateAccountDto } from './dto/create-account.dto.js';
import { WithdrawQuery } from './dto/withdraw.query.js';

@ApiTags('accounts')
@Controller('accounts')
export class AccountsController {
  constructor(
    private readonly accounts: AccountsRepository,
    private readonly service: AccountsService,
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
    return this.service.deposit(id, amount);
  }

  @Post(':id/withdraw')
  @HttpCode(200)
  @ApiParam({ name: 'id', type: 'integer' })
  @ApiOkResponse({ type: AccountDto })
  @ApiErrors(400, 404, 409, 422, 503)
  withdraw(
    @AccountId() id: number,
    @Body() { amount }: AmountDto,
    @Query() { unsafe }: WithdrawQuery,
  ): Promise<AccountDto> {
    return unsafe === 'true' ? this.service.withdrawUnsafe(id, amount) : this.service.withdraw(id, amount);
  }
}
