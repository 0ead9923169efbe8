import { IsString, Matches } from 'class-validator';

export class RunDto {
  @IsString()
  @Matches(/^[a-z]{1,20}$/, { message: 'scenario must be the name of a scenario' })
  readonly scenario!: string;
}
