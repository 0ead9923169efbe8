import { ApiProperty } from '@nestjs/swagger';
import type { Account } from '../account.js';

export class AccountDto implements Account {
  @ApiProperty({ example: 1 })
  readonly id!: number;

  @ApiProperty({ example: 'Ada' })
  readonly owner!: string;

  @ApiProperty({ example: 1000, description: 'In minor units.' })
  readonly balance!: number;
}
