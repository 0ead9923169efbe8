import { createHash, timingSafeEqual } from 'node:crypto';
import { type CanActivate, type ExecutionContext, Inject, Injectable, UnauthorizedException } from '@nestjs/common';
import type { Request, Response } from 'express';
import { appConfig, type AppConfig } from '../config/app.config.js';

/**
 * Lets in who knows the password of the operators (Basic authentication): nobody, if there is none. A real app asks its
 * own users; this one has none.
 */
@Injectable()
export class OperatorGuard implements CanActivate {
  constructor(@Inject(appConfig.KEY) private readonly config: AppConfig) {}

  canActivate(context: ExecutionContext): boolean {
    const http = context.switchToHttp();
    const request = http.getRequest<Request & { user?: { name: string } }>();
    const [name, password] = credentialsOf(request.headers.authorization);
    if (name && this.config.opsPassword && isSame(password, this.config.opsPassword)) {
      request.user = { name };
      return true;
    }
    http.getResponse<Response>().setHeader('WWW-Authenticate', 'Basic realm="Operators", charset="UTF-8"');
    throw new UnauthorizedException();
  }
}

function credentialsOf(authorization = ''): [name: string, password: string] {
  const [, encoded = ''] = /^Basic (.+)$/i.exec(authorization) ?? [];
  const [name = '', ...password] = Buffer.from(encoded, 'base64').toString('utf8').split(':');
  return [name, password.join(':')];
}

/** Takes as long for a wrong one, wherever it is wrong. */
function isSame(given: string, expected: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(expected));
}
