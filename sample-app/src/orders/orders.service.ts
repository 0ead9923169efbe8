import { Injectable } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { CurrentLock, WithLock, type Lock } from 'nest-redis-lock';
import { KeyUsedError, PaymentProvider } from '../payments/payment-provider.js';
import { fingerprintOf, type Order, type OrderRequest } from './order.js';
import { OrderNotFoundError, SerialUsedError } from './orders.errors.js';
import { OrdersRepository } from './orders.repository.js';

@Injectable()
export class OrdersService {
  constructor(
    private readonly orders: OrdersRepository,
    private readonly payments: PaymentProvider,
  ) {}

  /** @throws OrderNotFoundError */
  async get(serial: string): Promise<Order> {
    const [order] = await this.orders.withSerial(serial);
    if (!order) throw new OrderNotFoundError(serial);
    return order;
  }

  countCharges(serial: string): Promise<number> {
    return this.payments.countCharges(serial);
  }

  /**
   * Creates an order once, however often the client sends it: while the first request is under way, after its reply was
   * lost, and after its process died at any step.
   *
   * The lock lets one request work while the others wait for its result. The record answers those that come later. The
   * serial is the key under which the provider charges once, for a process that died between the charge and the order: it
   * refuses another amount then.
   *
   * @throws SerialUsedError when the serial belongs to another order
   */
  @WithLock('order:<request.serial>')
  async create(request: OrderRequest, @CurrentLock() lock?: Lock): Promise<Order> {
    const { serial, amount } = request;
    const recorded = await this.orders.recorded(serial);
    if (recorded && recorded.fingerprint !== fingerprintOf(request)) throw new SerialUsedError(serial);
    if (recorded) return recorded.order;
    await this.payments.charge({ serial, amount, idempotencyKey: serial }).catch((error: unknown) => {
      throw error instanceof KeyUsedError ? new SerialUsedError(serial) : error;
    });
    return this.orders.create(request, lock!);
  }

  /** Looks for the order and creates it, without a lock: two requests at once both find none. */
  async createUnsafe(request: OrderRequest): Promise<Order> {
    const { serial, amount } = request;
    const [order] = await this.orders.withSerial(serial);
    if (order) return order;
    await this.payments.charge({ serial, amount, idempotencyKey: randomUUID() });
    return this.orders.createUnsafe(request);
  }
}
