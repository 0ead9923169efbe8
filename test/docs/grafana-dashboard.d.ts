import type { Dashboard, FieldConfig, GraphFieldConfig, Panel } from '@grafana/schema';
import type { Options as StatOptions } from '@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen';
import type { Options as TimeSeriesOptions } from '@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen';

/** What a type is in JSON: Grafana's enums are texts there. */
type InJson<T> = T extends string
  ? `${T}`
  : T extends readonly (infer Item)[]
    ? InJson<Item>[]
    : T extends object
      ? { [Name in keyof T]: InJson<T[Name]> }
      : T;

/** A panel of one kind, whose options Grafana's own type of a panel leaves open. */
interface PanelOf<Type extends string, Options, Custom> extends Omit<Panel, 'type' | 'options' | 'fieldConfig'> {
  type: Type;
  options: Partial<Options>;
  fieldConfig: { defaults: Omit<FieldConfig, 'custom'> & { custom?: Partial<Custom> }; overrides: [] };
}

/** A dashboard of Grafana with the kinds of panels that ours has. */
export type WrittenDashboard = InJson<
  Omit<Dashboard, 'panels'> & {
    panels: (PanelOf<'stat', StatOptions, never> | PanelOf<'timeseries', TimeSeriesOptions, GraphFieldConfig>)[];
  }
>;
