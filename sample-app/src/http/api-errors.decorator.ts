import { applyDecorators } from '@nestjs/common';
import { ApiProperty, ApiPropertyOptional, ApiResponse } from '@nestjs/swagger';

const MEANINGS = {
  400: 'The request is not valid; `message` lists the reasons.',
  404: 'There is no such thing.',
  409: 'Others held the lock for too long. `retryable` says whether nothing was changed, so that you may try again.',
  422: 'The balance, the stock or the serial does not allow it. Nothing was changed.',
  502: 'The bank did not do its part.',
  503:
    'Redis does not answer, so no lock can be acquired: try again later. ' +
    'Or the lock was lost meanwhile (`LOCK_LOST`): look first what has become of it.',
} as const;

class ErrorDto {
  @ApiProperty({ example: 409 })
  readonly statusCode!: number;

  @ApiProperty({ oneOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' } }] })
  readonly message!: string | string[];

  @ApiProperty({ example: 'Conflict' })
  readonly error!: string;

  @ApiPropertyOptional({ example: 'LOCK_TIMEOUT', description: 'Set when the lock is the reason.' })
  readonly code?: string;

  @ApiPropertyOptional({
    example: true,
    description: 'Set with `code`: whether nothing was done, so the same request may be sent again.',
  })
  readonly retryable?: boolean;

  @ApiPropertyOptional({ example: 12, description: 'When it may be sent again, in seconds, if that is known.' })
  readonly retryAfter?: number;
}

const RETRY_AFTER = {
  'Retry-After': {
    description: 'When the same request may be sent again, in seconds. Not set when the lock was lost.',
    schema: { type: 'integer' as const },
  },
};

/** Documents the errors that a route can return. */
export function ApiErrors(...statuses: (keyof typeof MEANINGS)[]): MethodDecorator {
  return applyDecorators(
    ...statuses.map((status) =>
      ApiResponse({
        status,
        description: MEANINGS[status],
        type: ErrorDto,
        ...((status === 409 || status === 503) && { headers: RETRY_AFTER }),
      }),
    ),
  );
}
