import { Inject } from '@nestjs/common';
import { checkedModuleName, DEFAULT_MODULE, lockServiceToken } from '../lock.tokens.js';

/** Injects the `LockService` of a named module: `constructor(@InjectLocks('billing') private readonly locks: LockService) {}`. */
export const InjectLocks = (moduleName: string = DEFAULT_MODULE): PropertyDecorator & ParameterDecorator => Inject(lockServiceToken(checkedModuleName('module', moduleName)));
