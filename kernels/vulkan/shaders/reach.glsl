// Limits a position to values that an int can hold. Positions farther away and NaN become positions
// far outside of the tensor (as in msc_reference__within_reach).
float within_reach(float place) {
    return place > -1e9 ? min(place, 1e9) : -1e9;
}
