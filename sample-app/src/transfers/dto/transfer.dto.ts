import { ApiProperty } from '@nestjs/swagger';
import { IsInt, Max, Min } from 'class-validator';
import { MAX_ACCOUNT_ID } from '../../accounts/account-id.decorator.js';
import { AmountDto } from '../../accounts/dto/amount.dto.js';
import { DiffersFrom } from './differs-from.decorator.js';

export class TransferDto extends AmountDto {
  @ApiProperty({ example: 1, description: 'The id of the account that pays.' })
  @IsInt()
  @Min(1)
  @Max(MAX_ACCOUNT_ID)
  readonly from!: number;

  @ApiProperty({ example: 2, description: 'The id of the account that is paid.' })
  @IsInt()
  @Min(1)
  @Max(MAX_ACCOUNT_ID)
  @DiffersFrom<TransferDto>('from')
  readonly to!: number;
}
