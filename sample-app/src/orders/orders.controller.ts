import { Body, Controller, Get, Param, Post, Query } from '@nestjs/common';
import { ApiCreatedResponse, ApiOkResponse, ApiTags } from '@nestjs/swagger';
import { UnsafeDemo } from '../demo/unsafe-demo.js';
import { UnsafeQuery } from '../demo/unsafe.query.js';
import { ApiErrors } from '../http/api-errors.decorator.js';
import { ChargesDto } from './dto/charges.dto.js';
import { CreateOrderDto } from './dto/create-order.dto.js';
import { OrderDto } from './dto/order.dto.js';
import { SerialParams } from './dto/serial.params.js';
import { OrdersService } from './orders.service.js';

@ApiTags('orders')
@Controller('orders')
export class OrdersController {
  constructor(
    private readonly orders: OrdersService,
    private readonly unsafeDemo: UnsafeDemo,
  ) {}

  @Post()
  @ApiCreatedResponse({ type: OrderDto, description: 'The order. The same serial gives the same answer.' })
  @ApiErrors(400, 409, 422, 503)
  create(@Body() order: CreateOrderDto, @Query() query: UnsafeQuery): Promise<OrderDto> {
    return this.unsafeDemo.isAskedFor(query) ? this.orders.createUnsafe(order) : this.orders.create(order);
  }

  @Get(':serial')
  @ApiOkResponse({ type: OrderDto })
  @ApiErrors(400, 404)
  get(@Param() { serial }: SerialParams): Promise<OrderDto> {
    return this.orders.get(serial);
  }

  @Get(':serial/charges')
  @ApiOkResponse({ type: ChargesDto })
  @ApiErrors(400)
  async charges(@Param() { serial }: SerialParams): Promise<ChargesDto> {
    return { serial, charges: await this.orders.countCharges(serial) };
  }
}
