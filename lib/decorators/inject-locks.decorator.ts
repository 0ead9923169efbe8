import { Inject } from '@nestjs/common';
import { checkedModuleName, DEFAULT_MODULE, lockServiceToken } from '../service/lock.tokens.js';
import { refuseStandard } from './method/standard-decorator.js';

/**
 * Injects the `LockService` of a named module: `constructor(@InjectLocks('billing') private readonly locks:
 * LockService) {}`.
 */
export const InjectLocks = (...named: [moduleName?: string]): PropertyDecorator & ParameterDecorator => {
  const inject = Inject(lockServiceToken(named.length === 0 ? DEFAULT_MODULE : checkedModuleName('module', named[0])));
  return (target: object, name: string | symbol | undefined, index?: number) => {
    refuseStandard('InjectLocks', name);
    inject(target, name, index!);
  };
};
