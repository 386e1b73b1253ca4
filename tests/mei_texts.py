"""Bars of MEI as notation programs write them, and what is heard of them."""

from musictx.music.notation.read import read_notation

HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<mei xmlns="http://www.music-encoding.org/ns/mei" meiversion="5.0"><meiHead><fileDesc><titleStmt><title>A song</title>
<title type="subordinate">1</title><respStmt><persName role="arranger">N</persName>
<persName role="composer">A. B.</persName></respStmt></titleStmt></fileDesc></meiHead><music><body><mdiv><score>
<scoreDef><staffGrp>
<staffDef n="1"><label>Voice</label><instrDef midi.instrnum="68"/>
<keySig sig="2s"/><meterSig count="2" unit="8"/></staffDef>
<staffGrp><label>Piano</label>
<staffDef n="2"><clef shape="G" line="2"/><keySig sig="2s"/><meterSig count="2" unit="8"/></staffDef>
<staffDef n="3"><keySig sig="2s"/><meterSig count="2" unit="8"/></staffDef>
</staffGrp></staffGrp></scoreDef><section><expansion plist="#a #b #a"/>"""
END = "</section></score></mdiv></body></music></mei>"
REST = '<layer n="1"><mRest/></layer>'


def measure(*staves, signs="", n=1):
    parts = "".join(f'<staff n="{i}">{layers}</staff>' for i, layers in enumerate(staves, 1))
    return f'<measure n="{n}">{parts}{signs}</measure>'


def read(*measures):
    return read_notation((HEAD + "".join(measures) + END).encode(), "mei")


def layer(*notes):
    return "<layer>" + "".join(notes) + "</layer>"


def note(name, dur=8, inside="", **more):
    said = "".join(f' {key.replace("_", ".")}="{value}"' for key, value in more.items())
    return f'<note xml:id="{name}{dur}" pname="{name}" oct="4" dur="{dur}"{said}>{inside}</note>'


def heard(notation):
    return [[(x.onset, x.length, x.pitch) for x in part.notes] for part in notation.parts]
