import { ApiProperty } from '@nestjs/swagger';
import { Matches } from 'class-validator';
import { AmountDto } from '../../accounts/dto/amount.dto.js';
import type { Payout } from '../bank.service.js';

export class PayoutDto extends AmountDto implements Payout {
  @ApiProperty({ example: 'DE02120300000000202051' })
  @Matches(/^[A-Z]{2}\d{2}[A-Z0-9]{11,30}$/, { message: 'iban must be an IBAN without spaces' })
  readonly iban!: string;
}
