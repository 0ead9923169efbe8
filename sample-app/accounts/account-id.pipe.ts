import { BadRequestException, Injectable, type PipeTransform } from '@nestjs/common';

/** The largest id the database's integer column can give. */
export const MAX_ACCOUNT_ID = 2_147_483_647;

/** Accepts one spelling per account: if `01` were `1` too, a key made of it would be a second lock for the same account. */
@Injectable()
export class AccountIdPipe implements PipeTransform<string, number> {
  transform(value: string): number {
    const isCanonical = /^[1-9]\d*$/.test(value);
    if (!isCanonical || Number(value) > MAX_ACCOUNT_ID) {
      throw new BadRequestException([`id must be a whole number from 1 to ${MAX_ACCOUNT_ID}`]);
    }
    return Number(value);
  }
}
