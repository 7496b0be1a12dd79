//! The hub as a shared object. An operator runs it with `burnet run --app libshared_hub.so=trusted`.

burnet_sdk::shared_object!(hub::Hub);
