// A place among elements as what an int can hold: far outside where it is farther than that, or no
// number (msc_reference__within_reach has the same).
float within_reach(float place) {
    return place > -1e9 ? min(place, 1e9) : -1e9;
}
