import { ApiPropertyOptional } from '@nestjs/swagger';
import { IsIn, IsOptional } from 'class-validator';

export class UnsafeQuery {
  @ApiPropertyOptional({
    enum: ['true', 'false'],
    description: 'Leaves out the lock, to show what goes wrong then. Refused unless the app runs with DEMO_UNSAFE=1.',
  })
  @IsOptional()
  @IsIn(['true', 'false'])
  readonly unsafe?: 'true' | 'false';
}
