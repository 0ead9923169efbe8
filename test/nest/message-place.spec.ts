import { expect, it } from '@jest/globals';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { KafkaContext, MqttContext, NatsContext, RedisContext, RmqContext, TcpContext } from '@nestjs/microservices';
import { messageOf } from '../../lib/http/handler-names.js';

it.each([
  ['TCP', new TcpContext([undefined as never, 'visit'])],
  ['RabbitMQ', new RmqContext([{}, undefined, 'visit'])],
  ['Redis', new RedisContext(['visit'])],
  ['NATS', new NatsContext(['visit', undefined])],
  [
    'Kafka',
    new KafkaContext([undefined as never, 0, 'visit', undefined as never, undefined as never, undefined as never]),
  ],
  ['MQTT', new MqttContext(['visit', {}])],
])('the log names what a message over %s is for', (_transport, context) => {
  const host = new ExecutionContextHost([{}, context]);
  host.setType('rpc');
  expect(messageOf(host)).toBe('Message "visit"');
});

it('the log shows a pattern whole, although it has what stands before a host in a URL', () => {
  const host = new ExecutionContextHost([{}, new TcpContext([undefined as never, '{"cmd":"orders@v1"}'])]);
  host.setType('rpc');
  expect(messageOf(host)).toBe('Message "{\\"cmd\\":\\"orders@v1\\"}"');
});
