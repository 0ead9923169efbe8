import { IsIn } from 'class-validator';
import { STAGE_ACTIONS, type StageAction } from './demo-messages.js';

export class StageDto {
  @IsIn(STAGE_ACTIONS)
  readonly action!: StageAction;
}
