/* Point of control and value area of growing profiles, bar by bar. Whole numbers only, so the result is that of
   segments.py to the last unit. A segment is a run of rows with one volume; edge[i] is the lowest row of segment i, and
   edge[segments] the row above the last. */

#include <stdint.h>

typedef int64_t i64;

/* What is known of the profile so far: segments [begin, end) were traded; `best` of them have the highest volume `peak`,
   `at` is one of these. */
typedef struct {
    i64 begin, end, peak, best, at;
} profile;

static void add(i64 *volume, i64 first, i64 above, i64 share, i64 more_low, i64 more_high) {
    for (i64 i = first; i < above; i++) volume[i] += share;
    volume[first] += more_low;
    volume[above - 1] += more_high;
}

/* Look for the highest volume in [first, above), and count how many have it. */
static void look(profile *now, const i64 *volume, i64 first, i64 above) {
    now->peak = -1;
    for (i64 i = first; i < above; i++) now->peak = volume[i] > now->peak ? volume[i] : now->peak;
    now->best = 0;
    for (i64 i = above - 1; i >= first; i--)
        if (volume[i] == now->peak) now->best++, now->at = i;
}

/* Volumes only grow, so a segment that was not touched is highest only where it was before. */
static void update(profile *now, const i64 *volume, i64 first, i64 above) {
    i64 most = -1;
    for (i64 i = first; i < above; i++) most = volume[i] > most ? volume[i] : most;
    if (most > now->peak)
        look(now, volume, first, above);
    else if (most == now->peak)
        look(now, volume, now->begin, now->end);
}

static i64 row_in(const i64 *edge, i64 segment, i64 wanted) {
    i64 low = edge[segment], high = edge[segment + 1] - 1;
    return wanted < low ? low : wanted > high ? high : wanted;
}

/* Row of the point of control: of all that have the peak the nearest to twice / 2, the lower of two. */
static i64 control(profile *now, const i64 *volume, const i64 *edge, i64 twice) {
    i64 row = row_in(edge, now->at, twice >> 1);
    if (now->best == 1) return row;
    i64 least = INT64_MAX;
    for (i64 i = now->begin, left = now->best; left; i++) {
        if (volume[i] != now->peak) continue;
        i64 here = row_in(edge, i, twice >> 1), far = 2 * here - twice;
        far = far < 0 ? -far : far;
        if (far < least) least = far, row = here, now->at = i;
        left--;
    }
    return row;
}

/* Take the larger neighbour until `need` is inside; `up_first` decides where both are equal. */
static void grow(const profile *now, const i64 *volume, const i64 *edge, i64 need, i64 up_first, i64 *low, i64 *high) {
    i64 inside = now->peak, up = now->at, down = now->at;
    up += *high + 1 == edge[up + 1];
    down -= *low == edge[down];
    while (inside < need) {
        i64 above = up < now->end ? volume[up] : -1, below = down >= now->begin ? volume[down] : -1;
        int upward = above > below || (up_first && above == below);
        i64 one = upward ? above : below, rows = upward ? edge[up + 1] - 1 - *high : *low - edge[down];
        if (one < 0) return;
        if (one > 0 && (need - inside - 1) / one < rows) {
            rows = (need - inside - 1) / one + 1;
            if (upward) *high += rows; else *low -= rows;
            return;
        }
        inside += one * rows;
        if (upward) *high += rows, up++; else *low -= rows, down--;
    }
}

/* Write four numbers a bar to `found`: point of control, top and bottom of the value area (rows), and the volume at the
   point of control. `first` and `above` are each bar's segments, `volume` is zero. */
void levels(i64 bars, const i64 *first, const i64 *above, const i64 *share, const i64 *more_low, const i64 *more_high,
            const i64 *edge, i64 *volume, const i64 *twice, const i64 *need, i64 up_first, i64 *found) {
    profile now = {first[0], above[0], -1, 0, first[0]};
    for (i64 bar = 0; bar < bars; bar++, found += 4) {
        add(volume, first[bar], above[bar], share[bar], more_low[bar], more_high[bar]);
        i64 begin = now.begin, end = now.end;
        now.begin = first[bar] < begin ? first[bar] : begin;
        now.end = above[bar] > end ? above[bar] : end;
        if (now.peak > 0)
            update(&now, volume, first[bar], above[bar]);
        else
            look(&now, volume, now.begin, now.end);
        i64 row = now.peak ? control(&now, volume, edge, twice[bar]) : twice[bar] >> 1;
        i64 low = row, high = row;
        if (now.peak) grow(&now, volume, edge, need[bar], up_first, &low, &high);
        found[0] = row, found[1] = high, found[2] = low, found[3] = now.peak;
    }
}
