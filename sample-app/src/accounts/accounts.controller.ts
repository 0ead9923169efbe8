import { BadRequestException, Body, Controller, Get, HttpCode, Inject, Post, Query } from '@nestjs/common';
import { ApiCreatedResponse, ApiOkResponse, ApiParam, ApiTags } from '@nestjs/swagger';
import { appConfig, type AppConfig } from '../config/app.config.js';
import { ApiErrors } from '../http/api-errors.decorator.js';
import { AccountId } from './account-id.decorator.js';
import { AccountsService } from './accounts.service.js';
import { AccountDto } from './dto/account.dto.js';
import { AmountDto } from './dto/amount.dto.js';
import { CreateAccountDto } from './dto/create-account.dto.js';
import { WithdrawQuery } from './dto/withdraw.query.js';

@ApiTags('accounts')
@Controller('accounts')
export class AccountsController {
  constructor(
    private readonly accounts: AccountsService,
    @Inject(appConfig.KEY) private readonly config: AppConfig,
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
  withdraw(
    @AccountId() id: number,
    @Body() { amount }: AmountDto,
    @Query() { unsafe }: WithdrawQuery,
  ): Promise<AccountDto> {
    if (unsafe !== 'true') return this.accounts.withdraw(id, amount);
    if (this.config.demoUnsafe) return this.accounts.withdrawUnsafe(id, amount);
    throw new BadRequestException(['unsafe=true loses money. To see it do so, start the app with DEMO_UNSAFE=1']);
  }
}
