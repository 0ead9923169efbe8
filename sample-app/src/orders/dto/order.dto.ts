import { ApiProperty } from '@nestjs/swagger';
import type { Order } from '../order.js';
import { CreateOrderDto } from './create-order.dto.js';

export class OrderDto extends CreateOrderDto implements Order {
  @ApiProperty({ example: 1 })
  readonly id!: number;
}
