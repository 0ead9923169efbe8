import { ValidationPipe, type INestApplication } from '@nestjs/common';
import { DocumentBuilder, SwaggerModule } from '@nestjs/swagger';

/** Sets up the validation and `/docs`; the tests use it, too. */
export function setUpApp(app: INestApplication): void {
  app.useGlobalPipes(new ValidationPipe({ whitelist: true, forbidNonWhitelisted: true, transform: true }));

  const config = new DocumentBuilder()
    .setTitle('A shop')
    .setDescription(
      'Balances, stock, orders, interest, reports and payouts, made right by locks. Money is in minor units: 1000 is 10.00.',
    )
    .build();
  SwaggerModule.setup('docs', app, SwaggerModule.createDocument(app, config));
}
