import { Module } from '@nestjs/common';
import { DemoLink } from './demo-link.js';
import { DemoPageController } from './demo-page.controller.js';

@Module({ controllers: [DemoPageController], providers: [DemoLink] })
export class DemoPageModule {}
