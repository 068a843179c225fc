// Written by write_cases.py from keras_onlstm/text/tokens.py.

export const ABBREVIATIONS = `
mr mrs ms dr prof st jr sr messrs mme mlle rev hon pres gov sen rep gen col maj capt lt sgt cmdr
adm inc corp co ltd bros assn dept univ ave blvd vs etc e.g i.e cf al approx est fig vol pp eds
jan feb mar apr jun jul aug sep sept oct nov dec a.m p.m u.s u.k u.n u.s.a d.c n.y n.j n.c s.c
l.a ph.d m.d b.a m.a calif conn fla ga kan ky md mass mich minn mont neb nev okla pa tenn tex va
vt wis wyo
`
  .trim()
  .split(/\s+/);
export const STARTERS = `
the he she it they we you this that these those there but and his her its their our my your what
when where why how who if so
`
  .trim()
  .split(/\s+/);
