package jdk.nashorn.api.scripting;

import java.util.HashMap;

/** A class of Java 8 to 14 that Maxwell 1.22 needs in order to start; it is used only by filters in JavaScript. */
public abstract class ScriptObjectMirror extends HashMap<String, Object> {
    public abstract boolean isArray();
}
