import { plainToInstance } from 'class-transformer';
import { IsIn, IsOptional, IsPort, Matches, MinLength, validateSync, type ValidatorOptions } from 'class-validator';

/** The environment variables of the app. An empty one counts as not set. */
export class Environment {
  @Matches(/^postgres(ql)?:\/\/./, {
    message: ({ value }) =>
      value === undefined
        ? 'DATABASE_URL is not set. Set it, or run `npm start`, which brings its own database.'
        : 'DATABASE_URL must look like postgres://user:password@host:5432/database',
  })
  readonly DATABASE_URL!: string;

  @IsOptional()
  @Matches(/^rediss?:\/\/./, { message: 'REDIS_URL must look like redis://user:password@host:6379' })
  readonly REDIS_URL?: string;

  @IsOptional()
  @Matches(/^https?:\/\/./, { message: 'BANK_URL must look like http://host:8080' })
  readonly BANK_URL?: string;

  @IsPort({ message: 'PORT is "$value", but must be a number from 0 to 65535' })
  readonly PORT: string = '3000';

  /** How long a request waits for a busy account before it gets a 409. The lock module checks that it is a duration. */
  readonly LOCK_WAIT?: string;

  /** How long Redis keeps a lock if its process dies. The lock module checks that it is a duration. */
  readonly LOCK_LEASE?: string;

  @IsOptional()
  @Matches(/^\d{1,5}$/, { message: 'FRAUD_CHECK_MS must be a number of milliseconds' })
  readonly FRAUD_CHECK_MS?: string;

  /** What operators log in with, to see the locks. */
  @IsOptional()
  @MinLength(8, { message: 'OPS_PASSWORD must have 8 characters or more' })
  readonly OPS_PASSWORD?: string;

  @IsOptional()
  @IsIn(['0', '1'], { message: 'DEMO_UNSAFE must be 1, or not set' })
  readonly DEMO_UNSAFE?: string;
}

/**
 * Returns the environment variables of the app.
 *
 * @throws Error that lists the wrong ones
 */
export function readEnvironment(variables: NodeJS.ProcessEnv): Environment {
  return validated(variables, {});
}

/** Does the same for a launcher, which itself starts the services that are not given. */
export function readGivenEnvironment(variables: NodeJS.ProcessEnv): Partial<Environment> & Pick<Environment, 'PORT'> {
  return validated(variables, { skipMissingProperties: true });
}

function validated(variables: NodeJS.ProcessEnv, options: ValidatorOptions): Environment {
  const given = Object.fromEntries(Object.entries(variables).filter(([, value]) => value !== ''));
  const environment = plainToInstance(Environment, given);
  const errors = validateSync(environment, { ...options, stopAtFirstError: true });
  if (errors.length === 0) return environment;
  throw new Error(errors.flatMap(({ constraints }) => Object.values(constraints ?? {})).join('\n'));
}
