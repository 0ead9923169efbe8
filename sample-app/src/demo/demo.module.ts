import { Global, Module } from '@nestjs/common';
import { UnsafeDemo } from './unsafe-demo.js';

@Global()
@Module({ providers: [UnsafeDemo], exports: [UnsafeDemo] })
export class DemoModule {}
