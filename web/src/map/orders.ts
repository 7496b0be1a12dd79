// What others ask of the map. The map fills this in while it is there; before, nothing happens.

export interface MapOrders {
  fit(): void;
  nextLayout(): void;
  toggleLoad(): void;
  zoom(factor: number): void;
}

export const mapOrders: MapOrders = { fit() {}, nextLayout() {}, toggleLoad() {}, zoom() {} };
