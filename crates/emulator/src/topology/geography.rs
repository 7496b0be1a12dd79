//! Places on the globe, and how long light takes between them.

use std::time::Duration;

/// The earth's mean radius.
const EARTH_RADIUS_KM: f64 = 6371.0;

/// The speed of light in glass: two thirds of that in a vacuum, which is five microseconds for a kilometre.
const FIBRE_KM_PER_S: f64 = 200_000.0;

/// A place on the globe, in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    latitude: f64,
    longitude: f64,
}

// `new` lets no NaN in.
impl Eq for Place {}

impl Place {
    /// A place, if the degrees are valid.
    pub fn new(latitude: f64, longitude: f64) -> Option<Place> {
        let is_there = latitude.abs() <= 90.0 && longitude.abs() <= 360.0;
        is_there.then_some(Place { latitude, longitude })
    }

    /// Degrees north.
    pub fn latitude(self) -> f64 {
        self.latitude
    }

    /// Degrees east.
    pub fn longitude(self) -> f64 {
        self.longitude
    }

    /// The distance along the great circle (haversine formula), in kilometres.
    pub(super) fn distance_km(self, to: Place) -> f64 {
        let half_chord = |degrees: f64| (degrees.to_radians() / 2.0).sin().powi(2);
        let cosines = self.latitude.to_radians().cos() * to.latitude.to_radians().cos();
        let chord =
            half_chord(to.latitude - self.latitude) + cosines * half_chord(to.longitude - self.longitude);
        2.0 * EARTH_RADIUS_KM * chord.clamp(0.0, 1.0).sqrt().asin()
    }
}

/// How long a signal takes through so much fibre, to the microsecond. `None` if the distance is impossible on earth.
pub(super) fn propagation(distance_km: f64) -> Option<Duration> {
    // Half of the circumference, and the same again for the detours of cables.
    let longest_km = 2.0 * std::f64::consts::PI * EARTH_RADIUS_KM;
    let is_one = (0.0..=longest_km).contains(&distance_km);
    is_one.then(|| Duration::from_micros((distance_km / FIBRE_KM_PER_S * 1e6).round() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cities_are_as_far_apart_as_they_are() {
        let new_york = Place::new(40.71, -74.01).unwrap();
        let chicago = Place::new(41.85, -87.65).unwrap();
        assert!((new_york.distance_km(chicago) - 1146.0).abs() < 2.0);
        assert_eq!(new_york.distance_km(new_york), 0.0);
        let other_side = Place::new(-40.71, 105.99).unwrap();
        assert!((new_york.distance_km(other_side) - 20_015.0).abs() < 1.0);
    }

    #[test]
    fn a_kilometre_of_fibre_takes_five_microseconds() {
        assert_eq!(propagation(1000.0), Some(Duration::from_millis(5)));
        assert_eq!(propagation(-1.0), None);
        assert_eq!(propagation(f64::NAN), None);
        assert_eq!(propagation(1e9), None);
        assert_eq!(Place::new(91.0, 0.0), None);
        assert_eq!(Place::new(f64::NAN, 0.0), None);
    }
}
