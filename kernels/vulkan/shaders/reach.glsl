// Limits a position to values that an int can hold: positions farther away, or NaN, become far
// outside positions (as in msc_reference__within_reach).
float within_reach(float place) {
    return place > -1e9 ? min(place, 1e9) : -1e9;
}
