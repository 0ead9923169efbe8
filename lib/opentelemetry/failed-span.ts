import { SpanStatusCode, type Span } from '@opentelemetry/api';
import { LockError } from '../errors/lock.error.js';

/**
 * Marks a span as failed. Records only errors of this library: their messages have no keys in them.
 *
 * @param errorType the same as in the metrics
 */
export function failSpan(span: Span, errorType: string, error?: unknown): void {
  span.setAttribute('error.type', errorType);
  if (!(error instanceof LockError)) return void span.setStatus({ code: SpanStatusCode.ERROR, message: errorType });
  span.recordException({ name: error.name, message: error.message, code: error.code });
  span.setStatus({ code: SpanStatusCode.ERROR, message: error.message });
}
