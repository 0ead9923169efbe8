import { ApiProperty } from '@nestjs/swagger';
import { AccountDto } from '../../accounts/dto/account.dto.js';

export class TransferResultDto {
  @ApiProperty()
  readonly from!: AccountDto;

  @ApiProperty()
  readonly to!: AccountDto;
}
