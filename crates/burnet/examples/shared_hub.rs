//! The hub as a shared object: what an operator runs with `burnet run --app libshared_hub.so=trusted`.

burnet_sdk::shared_object!(hub::Hub);
