//! Converts values from Python: fields, ports, datapath ids.
//!
//! In: numbers, text, bytes, addresses of `ipaddress`. Out: numbers that fit, or an exception that names the argument.
//! Never changes a value to make it fit.

use flow::{DatapathId, Field, MacAddr, PortNo};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyString, PyTuple};
use std::net::{Ipv4Addr, Ipv6Addr};

/// A field's value, and its mask unless all of it counts.
pub(crate) type Masked = (u128, Option<u128>);

/// The field of this name.
pub(crate) fn field(name: &str) -> PyResult<Field> {
    Field::from_name(name).ok_or_else(|| {
        let names: Vec<_> = Field::all().map(Field::name).collect();
        PyTypeError::new_err(format!("there is no field {name}; there are {}", names.join(", ")))
    })
}

/// A value for a field, with or without a mask: a number, text (`10.0.0.0/8`), bytes, an object of `ipaddress`, or a pair of value and
/// mask.
pub(crate) fn field_value(field: Field, value: &Bound<'_, PyAny>) -> PyResult<Masked> {
    let (value, mask) = match value.cast::<PyTuple>() {
        Ok(pair) => {
            let (value, mask): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair.extract()?;
            (plain(field, &value)?.0, Some(plain(field, &mask)?.0))
        }
        Err(_) => plain(field, value)?,
    };
    if mask.is_some() && !field.maskable() {
        return Err(PyValueError::new_err(format!("{} takes no mask", field.name())));
    }
    let bits = value | mask.unwrap_or_default();
    if bits & !field.full_mask() != 0 {
        let (name, width) = (field.name(), field.bits());
        return Err(PyValueError::new_err(format!("{name}: {bits:#x} is wider than {width} bits")));
    }
    Ok((value, mask))
}

/// A value for a field, all of which counts.
pub(crate) fn whole_value(field: Field, value: &Bound<'_, PyAny>) -> PyResult<u128> {
    match field_value(field, value)? {
        (value, None) => Ok(value),
        _ => Err(PyValueError::new_err(format!("{} takes no mask here", field.name()))),
    }
}

fn plain(field: Field, value: &Bound<'_, PyAny>) -> PyResult<Masked> {
    if let Ok(text) = value.cast::<PyString>() {
        return text_value(field, text.to_str()?);
    }
    if value.is_instance_of::<PyInt>() {
        return Ok((number(field, value)?, None));
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok((bytes_value(field, bytes.as_bytes())?, None));
    }
    // The addresses and networks of `ipaddress` print as what they are; what prints as something else is refused by its print.
    text_value(field, value.str()?.to_str()?)
}

fn text_value(field: Field, text: &str) -> PyResult<Masked> {
    // The value of most matches, without asking what else it might be.
    if field.bits() == MAC_BITS
        && let Some(address) = usual_address(text)
    {
        return Ok((u128::from(address), None));
    }
    field.read_value(text).map_err(|reason| PyValueError::new_err(format!("{}: {reason}", field.name())))
}

/// An Ethernet address as `PacketIn` writes it: six times two digits. Any other form is for the general way.
fn usual_address(text: &str) -> Option<u64> {
    let text: &[u8; 17] = text.as_bytes().try_into().ok()?;
    let mut address = 0;
    for (index, byte) in text.iter().enumerate() {
        if index % 3 == 2 {
            (*byte == b':').then_some(())?;
        } else {
            address = address << 4 | u64::from(char::from(*byte).to_digit(16)?);
        }
    }
    Some(address)
}

fn number(field: Field, value: &Bound<'_, PyAny>) -> PyResult<u128> {
    let small = value.extract::<u64>().map(u128::from);
    small.or_else(|_| value.extract::<u128>()).map_err(|_| {
        PyValueError::new_err(format!("{}: {value} is not a number of {} bits", field.name(), field.bits()))
    })
}

fn bytes_value(field: Field, bytes: &[u8]) -> PyResult<u128> {
    if bytes.len() != field.bytes() {
        let (name, expected) = (field.name(), field.bytes());
        return Err(PyValueError::new_err(format!("{name} takes {expected} bytes, not {}", bytes.len())));
    }
    Ok(bytes.iter().fold(0, |number, byte| number << 8 | u128::from(*byte)))
}

const MAC_BITS: u32 = 48;
const IPV6_BITS: u32 = 128;

/// A field's value for Python: addresses as text, everything else as a number.
pub(crate) fn to_python<'py>(py: Python<'py>, field: Field, value: u128) -> PyResult<Bound<'py, PyAny>> {
    let text = match field {
        Field::Ipv4Src | Field::Ipv4Dst | Field::ArpSpa | Field::ArpTpa => {
            u32::try_from(value).ok().map(|number| Ipv4Addr::from(number).to_string())
        }
        _ if field.bits() == MAC_BITS => {
            u64::try_from(value).ok().map(|number| MacAddr::from_u64(number).to_string())
        }
        _ if field.bits() == IPV6_BITS => Some(Ipv6Addr::from(value).to_string()),
        _ => None,
    };
    Ok(match text {
        Some(text) => PyString::new(py, &text).into_any(),
        None => value.into_pyobject(py)?.into_any(),
    })
}

/// A port's number: a number, or the name of a reserved port.
pub(crate) fn port(value: &Bound<'_, PyAny>) -> PyResult<PortNo> {
    if let Ok(text) = value.cast::<PyString>() {
        return text.to_str()?.parse().map_err(|refusal| PyValueError::new_err(format!("{refusal}")));
    }
    value.extract().map(PortNo)
}

/// A datapath id: a number, or text in any of its forms.
pub(crate) fn datapath(value: &Bound<'_, PyAny>) -> PyResult<DatapathId> {
    if let Ok(text) = value.cast::<PyString>() {
        return text.to_str()?.parse().map_err(|refusal| PyValueError::new_err(format!("{refusal}")));
    }
    value.extract().map(DatapathId)
}

/// The printed form of a datapath id: `of:0000000000000001`.
#[pyfunction]
#[pyo3(signature = (datapath, /))]
pub(crate) fn show_datapath(datapath: u64) -> String {
    DatapathId(datapath).to_string()
}

/// A datapath id from any of its forms: `1`, `0x1`, `00:00:00:00:00:00:00:01`, `of:0000000000000001`.
#[pyfunction]
#[pyo3(signature = (text, /))]
pub(crate) fn read_datapath(text: &Bound<'_, PyString>) -> PyResult<u64> {
    datapath(text.as_any()).map(|datapath| datapath.0)
}
