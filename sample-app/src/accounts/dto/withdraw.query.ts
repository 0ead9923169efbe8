import { ApiPropertyOptional } from '@nestjs/swagger';
import { IsIn, IsOptional } from 'class-validator';

export class WithdrawQuery {
  @ApiPropertyOptional({
    enum: ['true', 'false'],
    description: 'Withdraws without the lock, to show the lost update. Refused unless the app runs with DEMO_UNSAFE=1.',
  })
  @IsOptional()
  @IsIn(['true', 'false'])
  readonly unsafe?: 'true' | 'false';
}
