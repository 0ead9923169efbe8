import { Injectable } from '@nestjs/common';
import { setTimeout } from 'node:timers/promises';

/** Simulates a service that is called over the network, and takes its time while others look at the same stock. */
@Injectable()
export class Warehouse {
  async reserve(_sku: string): Promise<void> {
    await setTimeout(2);
  }
}
