import { Body, Controller, HttpCode, Post } from '@nestjs/common';
import { ApiOkResponse, ApiTags } from '@nestjs/swagger';
import { ApiErrors } from '../http/api-errors.decorator.js';
import { TransferResultDto } from './dto/transfer-result.dto.js';
import { TransferDto } from './dto/transfer.dto.js';
import { TransfersService } from './transfers.service.js';

@ApiTags('transfers')
@Controller('transfers')
export class TransfersController {
  constructor(private readonly transfers: TransfersService) {}

  @Post()
  @HttpCode(200)
  @ApiOkResponse({ type: TransferResultDto })
  @ApiErrors(400, 404, 409, 422, 503)
  transfer(@Body() { from, to, amount }: TransferDto): Promise<TransferResultDto> {
    return this.transfers.transfer(from, to, amount);
  }
}
