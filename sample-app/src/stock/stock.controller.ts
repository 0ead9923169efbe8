import { Body, Controller, Get, HttpCode, Param, Post, Put, Query } from '@nestjs/common';
import { ApiOkResponse, ApiTags } from '@nestjs/swagger';
import { UnsafeDemo } from '../demo/unsafe-demo.js';
import { UnsafeQuery } from '../demo/unsafe.query.js';
import { ApiErrors } from '../http/api-errors.decorator.js';
import { PiecesDto } from './dto/pieces.dto.js';
import { SkuParams } from './dto/sku.params.js';
import { StockDto } from './dto/stock.dto.js';
import { FlashSale } from './flash-sale.js';
import { StockService } from './stock.service.js';

@ApiTags('stock')
@Controller('stock')
export class StockController {
  constructor(
    private readonly stock: StockService,
    private readonly sale: FlashSale,
    private readonly unsafeDemo: UnsafeDemo,
  ) {}

  @Put(':sku')
  @ApiOkResponse({ type: StockDto })
  @ApiErrors(400, 409, 503)
  set(@Param() { sku }: SkuParams, @Body() { pieces }: PiecesDto): Promise<StockDto> {
    return this.stock.set(sku, pieces);
  }

  @Get(':sku')
  @ApiOkResponse({ type: StockDto })
  @ApiErrors(400, 404)
  get(@Param() { sku }: SkuParams): Promise<StockDto> {
    return this.stock.get(sku);
  }

  @Post(':sku/buy')
  @HttpCode(200)
  @ApiOkResponse({ type: StockDto })
  @ApiErrors(400, 404, 409, 422, 503)
  buy(@Param() { sku }: SkuParams, @Query() query: UnsafeQuery): Promise<StockDto> {
    return this.unsafeDemo.isAskedFor(query) ? this.stock.sellUnsafe(sku) : this.sale.buy(sku);
  }
}
