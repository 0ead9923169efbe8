import { ApiProperty } from '@nestjs/swagger';
import { IsInt, IsString, Matches, Max, MaxLength, Min } from 'class-validator';
import { MAX_MONEY } from '../money.js';

export class CreateAccountDto {
  @ApiProperty({ example: 'Ada', maxLength: 100 })
  @IsString()
  @MaxLength(100)
  @Matches(/^(?=.*\S)\P{Cc}*$/u, { message: 'owner must be a name, without control characters' })
  readonly owner!: string;

  @ApiProperty({ example: 1000, minimum: 0, maximum: MAX_MONEY, description: 'In minor units.' })
  @IsInt()
  @Min(0)
  @Max(MAX_MONEY)
  readonly balance!: number;
}
